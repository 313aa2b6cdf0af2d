-- A submission must not wait for a lock of its form's automation, as a reference does while the automation is being deleted.
-- Triggers of deleted automations are deleted when they are due.
alter table automation_triggers drop constraint automation_triggers_automation_id_fkey;
drop index automation_triggers_automation;
