-- A deploy publishes the pages it holds; undone, it hides again those that were hidden.

alter table deploy_pages
    add was_published  boolean not null default true,
    -- When it would have published itself.
    add publish_at     timestamptz;
-- Pages that the deploy made were not there.
update deploy_pages set was_published = false where version_id is null;
alter table deploy_pages alter was_published drop default;
