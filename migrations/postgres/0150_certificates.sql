-- TLS certificates of custom domains, the base host and the wildcard of the sites domain, and the orders for them.

create table certificates (
    -- Host in lower case and punycode, or `*.` and the sites domain.
    name              text primary key,
    -- PEM, the host's own certificate first; null until one is issued.
    chain             text,
    -- PKCS #8 in DER, sealed for the purpose `certificate_key`.
    sealed_key        bytea,
    issuer            text,
    not_before        timestamptz,
    not_after         timestamptz,
    -- When the certificate authority wants it renewed, or when a third of its life is left.
    renew_at          timestamptz,
    -- When the next order is due; null while nothing is to be ordered.
    next_attempt_at   timestamptz,
    -- Failed attempts since the last success, and since when.
    failed_attempts   integer not null default 0 check (failed_attempts >= 0),
    failing_since     timestamptz,
    error_code        text,
    -- What the certificate authority said.
    error             text,
    -- The order under way, which another replica continues after a crash. Its key is sealed like the certificate's.
    order_directory   text,
    order_url         text,
    order_sealed_key  bytea,
    lease_id          uuid,
    leased_until      timestamptz,
    -- When the owner was mailed that this certificate expires because renewals fail.
    expiry_mailed_at  timestamptz,
    created_at        timestamptz not null,
    check ((chain is null) = (sealed_key is null) and (chain is null) = (not_after is null)),
    check ((order_url is null) or (order_directory is not null and order_sealed_key is not null))
);
create index certificates_due on certificates (next_attempt_at) where next_attempt_at is not null;
create index certificates_failing on certificates (not_after) where failed_attempts > 0;

create table acme_accounts (
    directory_url       text primary key,
    -- Sealed for the purpose `acme_account`.
    sealed_credentials  bytea not null,
    created_at          timestamptz not null
);

-- Challenges that a certificate authority is about to check; the edge answers them.
create table acme_challenges (
    token              text primary key,
    name               text not null,
    kind               text not null check (kind in ('http-01', 'tls-alpn-01')),
    key_authorization  text not null,
    expires_at         timestamptz not null
);
create index acme_challenges_name on acme_challenges (name, kind);
create index acme_challenges_expired on acme_challenges (expires_at);

-- Orders of the last week, for the rate limits of the certificate authorities.
create table acme_orders (
    id                 uuid primary key,
    directory_url      text not null,
    name               text not null,
    -- The registered domain of the name: limits count certificates of it.
    registered_domain  text not null,
    created_at         timestamptz not null,
    issued_at          timestamptz,
    -- When the certificate authority refused it. An order that it never answered has neither time.
    failed_at          timestamptz
);
create index acme_orders_directory on acme_orders (directory_url, created_at);
create index acme_orders_domain on acme_orders (registered_domain, created_at);
create index acme_orders_name on acme_orders (name, created_at);

-- Keys of the session tickets that all edges share; the newest encrypts.
create table tls_ticket_keys (
    id          uuid primary key,
    -- 32 bytes or more, sealed for the purpose `ticket_key`.
    sealed_key  bytea not null,
    created_at  timestamptz not null
);
