-- Whether a webhook wants an event of a form, said here alone: one row if so, none if not. Stand it beside the webhook,
-- `from webhooks w cross join wants(w.id, w.all_forms, w.events, <form>, <event>)`: planners put its body in the place of its
-- name, so that it costs what it would written out. For that it is one plain `select`, `stable` and not `strict`; it takes
-- columns, as they don't see through a whole row; and as a plain `boolean` function it could not look anything up.

create function wants(webhook uuid, all_forms boolean, events text[], form uuid, what text) returns setof boolean
language sql stable
begin atomic
    select true
    where (all_forms or exists (select from webhook_forms f where f.webhook_id = webhook and f.form_id = form))
      and (what = any (events) or '*' = any (events) or (events = '{}' and what = 'submission.created'));
end;
