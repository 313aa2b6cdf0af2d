-- What waits to be handed in is summed up for each new file: from the index alone.

drop index form_files_visitor;
create index form_files_waiting_visitor on form_files (visitor) include (size_bytes) where submission_id is null;
create index form_files_waiting_form on form_files (form_id) include (size_bytes) where submission_id is null;
