-- The checks of custom domains that are under way, which are limited for each account.

create index domains_leased on domains (check_leased_until) where check_leased_until is not null;
