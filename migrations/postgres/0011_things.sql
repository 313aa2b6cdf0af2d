-- Everything a key can be kept to, in one shape: which kind, whose, in which folder. Restrictions are checked
-- against it, and folders count and list by it. A new kind of thing joins by a branch of its own.
--
-- A webhook lies in the folder in which all its forms lie; one that hears of all forms lies in none.

create view things as
    select 'pages' as kind, id, account_id, folder_id, title as name, created_at from pages
    union all
    select 'forms', id, account_id, folder_id, name, created_at from forms
    union all
    select 'analytics', id, account_id, folder_id, name, created_at from analytics_sites
    union all
    select 'webhooks', id, account_id,
           (select case when not all_forms and count(*) = count(f.folder_id) and count(distinct f.folder_id) = 1
                        then min(f.folder_id::text)::uuid end
            from webhook_forms l join forms f on f.id = l.form_id where l.webhook_id = webhooks.id),
           coalesce(description, ''), created_at
    from webhooks
    union all
    select 'folders', id, account_id, id, name, created_at from folders
    union all
    select 'subdomains', id, account_id, null, name, created_at from subdomains
    union all
    select 'domains', id, account_id, null, domain, created_at from domains
    union all
    select 'keys', id, account_id, folder_id, label, created_at from api_keys;

-- When its name was changed lately: a few times a day is enough.
alter table subdomains add renamed_at timestamptz[] not null default '{}';
