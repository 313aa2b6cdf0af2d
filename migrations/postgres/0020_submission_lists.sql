-- What is found of submissions besides all that count: those that were put aside, which are few.

create index submissions_aside on submissions (form_id, status, created_at, id) where status <> 'received';
-- Spam goes when it is old enough.
create index submissions_spam on submissions (created_at) where status = 'spam';
