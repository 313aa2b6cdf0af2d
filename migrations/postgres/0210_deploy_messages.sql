-- What a deploy changes, in its creator's words: at most 200 characters, which the API checks.
set local lock_timeout = '5s';

alter table deploys add message text;
