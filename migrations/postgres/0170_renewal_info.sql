-- When certificate authorities want certificates renewed: ACME renewal information (ARI, RFC 9773).

alter table certificates
    -- The directory of the authority that issued the certificate; null if it was read from files.
    add column issuer_directory text,
    -- When the authority's renewal information is read next; null if it offers none.
    add column renewal_info_due_at timestamptz;
create index certificates_renewal_info_due on certificates (renewal_info_due_at) where renewal_info_due_at is not null;
