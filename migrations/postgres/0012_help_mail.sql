-- Words to the operator are also mailed, where mail is configured.

alter table help_requests
    -- Null once mailed, or given up.
    add mail_due_at    timestamptz,
    add mail_attempts  int not null default 0;
create index help_requests_mail on help_requests (mail_due_at) where mail_due_at is not null;
