-- Previews: deploys that are served at hosts of their own until they are published or expire. And what lists of deploys show.

alter table deploys drop constraint deploys_status_check;
alter table deploys add constraint deploys_status_check
    check (status in ('presigned', 'uploaded', 'preview', 'expired', 'processed', 'rolled_back'));

alter table deploys
    -- The display name of the caller who created the deploy. Null for deploys before this migration.
    add created_by text,
    -- The key that created the deploy. Null for a session and for deploys before this migration.
    add created_by_key uuid,
    -- Totals of the deploy; null before it is processed and for deploys before this migration.
    add stats jsonb,
    -- Part of the host of a preview, and the permission to see it.
    add preview_token text,
    -- When the preview ends or ended; null for other deploys.
    add preview_expires_at timestamptz,
    -- What processing reported, for the publication of the preview.
    add preview_report jsonb,
    add constraint deploys_preview check
        ((status = 'preview') = (preview_token is not null) and (status <> 'preview' or preview_expires_at is not null));

create unique index deploys_preview_token on deploys (preview_token) where preview_token is not null;
create index deploys_preview_expiry on deploys (preview_expires_at) where status = 'preview';

-- The title that an HTML file of a preview has as a page. Null for other files.
alter table deploy_files add title text;
