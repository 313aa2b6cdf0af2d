-- Earlier versions of an automation with their permissions and variables: a run goes on with those of the version that it began
-- with, even if a key with other permissions has saved the automation since.
create table automation_former_versions (
    automation_id    uuid not null references automations on delete cascade,
    definition_hash  bytea not null,
    account_id       uuid not null,
    scopes           text[] not null,
    scope_folder_id  uuid,
    resource_ids     jsonb not null,
    sealed_env       bytea,
    primary key (automation_id, definition_hash),
    -- A definition is deleted when neither an automation nor an unfinished run has it.
    foreign key (account_id, definition_hash) references automation_definitions on delete cascade
);
create index automation_former_versions_definition on automation_former_versions (account_id, definition_hash);
