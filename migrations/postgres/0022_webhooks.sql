-- Webhooks that write for chat platforms, have their secret changed, and end when nobody is there any more.

alter table webhooks
    add template                text not null default 'default'
                                check (template in ('default', 'slack', 'discord', 'telegram', 'teams', 'google-chat')),
    add telegram_chat_id        text,
    -- The secret before the last change: it signs beside the new one until then.
    add sealed_previous_secret  bytea,
    add previous_secret_until   timestamptz,
    -- Since when nothing has been delivered although it was tried.
    add failing_since           timestamptz,
    -- Set when it was switched off by us: the address is gone, or has only failed for too long.
    add deactivated_reason      text check (deactivated_reason in ('gone', 'failing')),
    add deactivated_at          timestamptz;

-- What was under way when its webhook was switched off is not sent by itself any more.
alter table deliveries
    drop constraint deliveries_state_check,
    add constraint deliveries_state_check check (state in ('pending', 'delivered', 'failed', 'canceled')),
    -- Attempts made before its schedule was begun anew by hand.
    add attempts_before int not null default 0;
-- What can be sent again by hand.
create index deliveries_undelivered on deliveries (webhook_id, finished_at) where state in ('failed', 'canceled');
