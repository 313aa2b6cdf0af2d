-- The metadata of versions is stored as their texts are: once per account, however many versions share it.

insert into page_contents (account_id, hash, body)
select account_id, sha256(convert_to(body, 'UTF8')), body
from (select distinct account_id, metadata::text as body from page_versions) texts
on conflict (account_id, hash) do nothing;

alter table page_versions add metadata_id bigint references page_contents;
update page_versions v set metadata_id = c.id from page_contents c
where c.account_id = v.account_id and c.hash = sha256(convert_to(v.metadata::text, 'UTF8'));
alter table page_versions alter metadata_id set not null, drop column metadata;
create index page_versions_metadata on page_versions (metadata_id);
