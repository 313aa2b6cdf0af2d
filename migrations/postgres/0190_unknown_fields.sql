-- Release 0.2: the first migration after 0.1.
--
-- What a form does with answers to fields that it does not have, and the answers that it keeps of them.
set local lock_timeout = '5s';

insert into schema_releases (release, name) values (2, '0.2');

-- ignore, store or refuse (domain::forms::UnknownFields).
alter table forms add unknown_fields text not null default 'ignore';

-- Answers to unknown fields, by name, of forms that store them. Null if there are none. They are not in the payload, so results,
-- uniqueBy and templates don't see them.
alter table submissions add extra jsonb;
