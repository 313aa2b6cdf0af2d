-- Webhooks are told of a form that closes (`form.closed`). Who fills it tells them at once; of the others, the job-runner
-- finds here when to look: at `closes_at`, or right after an edit by which the form takes no more. Empty when it was
-- looked at since, and nothing is to come.

alter table forms add closing_look_at timestamptz;
update forms set closing_look_at = closes_at where closes_at > now();
create index forms_closing on forms (closing_look_at) where closing_look_at is not null;
