//! The example in the description of a definition.

use serde_json::{Value, json};

/// Returns a complete automation: it keeps each address of a form once, and tells another server of new ones.
pub(super) fn example() -> Value {
    let (form, page) = ("0198c5f0-3c1a-7000-8000-000000000001", "0198c5f0-3c1a-7000-8000-000000000002");
    json!({
        "trigger": {"type": "form_submission", "formId": form},
        "steps": [
            {"id": "known", "type": "find", "in": "entries", "pageId": page, "limit": 1,
             "where": {"email": "{{ lower(trigger.payload.email) }}"}},
            {"id": "is_new", "type": "condition", "name": "Only new addresses",
             "branches": [{"if": "steps.known.count == 0", "steps": [
                 {"id": "entry", "type": "create_entry", "pageId": page, "data": {
                     "email": "{{ lower(trigger.payload.email) }}",
                     "name": "{{ default(trim(trigger.payload.name), 'no name') }}",
                     "since": "{{ date_format(run.startedAt, '%Y-%m-%d', 'Europe/Berlin') }}"}},
                 {"id": "notify", "type": "fetch", "method": "POST", "url": "https://hooks.example.com/leads",
                  "headers": {"X-Source": "form {{ trigger.formId }}"},
                  "body": {"text": "New: {{ steps.entry.data.name }}", "entryId": "{{ steps.entry.id }}"},
                  "timeoutMs": 10_000, "retry": {"max": 3, "backoff": "exponential"}, "onError": "continue"}]}],
             "else": [
                 {"id": "end", "type": "stop", "status": "success",
                  "message": "{{ trigger.payload.email }} is known already"}]},
        ],
    })
}
