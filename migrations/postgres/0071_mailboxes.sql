-- The mailbox of an address, without a `+tag`: confirmation requests are counted by mailbox.
alter table mail_recipients
    add mailbox text not null generated always as (regexp_replace(address, '\+[^@]*@', '@')) stored;
create index mail_recipients_mailbox on mail_recipients (mailbox, asked_at);
