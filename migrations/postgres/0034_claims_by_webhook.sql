-- Deliveries are claimed webhook by webhook: none stands in another's way, so none needs to be moved aside.

drop index deliveries_parked;
drop index deliveries_due;
alter table deliveries drop column is_parked;
-- Each entry by itself: one that is dead is passed over by the next look, which a list of many is only when all are dead.
create index deliveries_pending on deliveries (webhook_id, next_attempt_at) with (deduplicate_items = off)
    where state = 'pending';
