-- Versions of the definition, other than its own, that a replay keeps data of: the trigger or outputs of their runs. The
-- replay is shown only to keys that may see their runs as well. Null for none.
alter table automation_runs add column source_hashes bytea[];
