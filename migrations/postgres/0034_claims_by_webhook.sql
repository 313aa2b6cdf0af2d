-- Deliveries are claimed webhook by webhook: none stands in another's way, so none needs to be moved aside.

drop index deliveries_parked;
drop index deliveries_due;
alter table deliveries drop column is_parked;
create index deliveries_pending on deliveries (webhook_id, next_attempt_at) where state = 'pending';
