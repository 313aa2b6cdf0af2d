-- Whether a mail about a submission has its place among those its form may cause: it is counted once, and what is counted
-- stands in the same commit. That it was tried before says neither.
alter table mails add has_place boolean not null default false;
update mails set has_place = true where kind = 'submission' and attempts > 0;
