-- Deliveries are claimed where they stand, many at a time, without a job or an outbox row for each.

alter table deliveries
    -- Due, but its webhook had as many attempts under way as it may: out of the way of others, taken up webhook by
    -- webhook as places come free.
    add is_parked    boolean not null default false,
    -- W3C trace context of whoever caused it, so that one trace runs on through the attempt.
    add traceparent  text,
    -- Room in each page for the row as an attempt begins it: then no index is touched.
    set (fillfactor = 80);

drop index deliveries_due;
create index deliveries_due on deliveries (next_attempt_at) where state = 'pending' and not is_parked;
create index deliveries_parked on deliveries (webhook_id, next_attempt_at) where state = 'pending' and is_parked;
