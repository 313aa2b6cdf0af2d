-- What operators changed with `webruntime`, or with `admin` of a local run. A row outlives what it is about.
set local lock_timeout = '5s';

create table operator_actions (
    id       bigint generated always as identity primary key,
    at       timestamptz not null,
    -- The operator: user@host, or the name that was given with --actor.
    actor    text not null,
    -- Such as `admin plan`.
    command  text not null,
    -- The id of the account, webhook or folder that was changed; null for all of them.
    target   text,
    -- Arguments and results. Never a secret.
    detail   jsonb not null
);
create index operator_actions_target on operator_actions (target, id);
