"""The README's calls, made with a client of openapi-python-client.

python readme.py FOLDER BASE_URL KEY HOOK_URL SITE_ZIP; the client is the package `generated` in FOLDER.
"""

import importlib
import pkgutil
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from uuid import UUID

folder, base_url, key, hook_url, site_zip = sys.argv[1:]
sys.path.insert(0, folder)

import generated  # noqa: E402
import httpx  # noqa: E402
from generated import models  # noqa: E402


def operation(name):
    """Returns the module of an operation, such as `pages.create`."""
    tag, _ = name.split(".")
    return importlib.import_module(f"generated.api.{tag}.{name.replace('.', '_')}")


def call(name, *path, client, status, **arguments):
    """Makes a call and returns its parsed body."""
    answer = operation(name).sync_detailed(*path, client=client, **arguments)
    assert answer.status_code == status, (name, answer.status_code, answer.content)
    return answer.parsed


# Each module of the client can be loaded.
for module in pkgutil.walk_packages(generated.__path__, "generated."):
    importlib.import_module(module.name)

visitor = generated.Client(base_url=base_url)
owner = generated.AuthenticatedClient(base_url=base_url, token=key)

trial = call("trial.create", client=visitor, status=201)
assert trial.key.startswith("st_trial_")
assert isinstance(trial, models.TrialResponse)
new = generated.AuthenticatedClient(base_url=base_url, token=trial.key)
assert call("account.read", client=new, status=200).plan == models.Plan.FREE

page = models.CreatePageRequest(slug="index", title="Hello", html="<h1>Hello, web</h1>")
page = call("pages.create", client=owner, status=201, body=page)
assert page.slug == "index", page

size = Path(site_zip).stat().st_size
deploy = call("deploys.create", client=owner, status=201, body=models.CreateDeployRequest(size_bytes=size))
put = httpx.put(
    deploy.upload_url, content=Path(site_zip).read_bytes(), headers={"content-type": "application/zip"}
)
assert put.is_success, put.text
id = deploy.deploy_id
process = models.ProcessDeployRequest(publish=False)
preview = call("deploys.process", id, client=owner, status=201, body=process)
assert preview.preview_url.startswith("http"), preview
published = call("deploys.publish", id, client=owner, status=200)
assert published.errors == [], published

domain = models.CreateDomainRequest(domain="python.shop.example")
domain = call("domains.create", client=owner, status=201, body=domain)
missing = [record for record in domain.records if record.status == models.DnsRecordStatus.MISSING]
assert "TXT" in [record.type_ for record in missing], domain
assert call("domains.read", domain.id, client=owner, status=200).domain == "python.shop.example"

email = models.Field(name="email", label="E-mail", type_=models.FieldType.EMAIL, required=True)
budget = models.Field(name="budget", label="Budget", type_=models.FieldType.NUMBER)
form = models.CreateFormRequest(name="Contact", fields=[email, budget])
form = call("forms.create", client=owner, status=201, body=form)
assert form.hosted_form_url.endswith(str(form.form_id)), form


def submit(status, **answers):
    body = models.SubmitFormRequest.from_dict(answers)
    return call("submissions.submit", form.form_id, client=visitor, status=status, body=body)


problem = submit(400, email="ana")
assert isinstance(problem, models.Problem) and problem.code == "validation_failed", problem
assert problem.field_errors[0].field == "email", problem

webhook = models.CreateWebhookRequest(url=hook_url)
webhook = call("webhooks.create", client=owner, status=201, body=webhook)
assert webhook.secret.startswith("whsec_"), webhook

leads = models.CreatePageRequest(slug="leads", title="Leads", html="", entry_template="<p>{{label}}</p>")
leads = call("pages.create", client=owner, status=201, body=leads)
label = "{{ lower(trigger.payload.email) }}: {{ trigger.payload.budget }} EUR"
keep = {"id": "keep", "type": "create_entry", "pageId": str(leads.id), "data": {"label": label}}
definition = {
    "name": "Big leads",
    "slug": "big-leads",
    "trigger": {"type": "form_submission", "formId": str(form.form_id)},
    "steps": [
        {
            "id": "big",
            "type": "condition",
            "branches": [{"if": "trigger.payload.budget >= 1000", "steps": [keep]}],
        }
    ],
}
automation = models.CreateAutomationRequest.from_dict(definition)
assert automation.to_dict() == definition, automation.to_dict()
automation = call("automations.create", client=owner, status=201, body=automation)
receipt = submit(201, email="Ana@Example.com", budget=2500)
assert receipt.success and isinstance(receipt.submission_id, UUID), receipt


def first_run():
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        logs = call("automations.logs", automation.id, client=owner, status=200).logs
        if logs and logs[0].status == models.AutomationRunStatus.SUCCESS:
            return logs[0]
        time.sleep(0.02)
    raise AssertionError("the automation did not run")


kept = next(step for step in first_run().steps if step.path == "keep")
assert kept.output["data"] == {"label": "ana@example.com: 2500 EUR"}, kept

bot = models.CreateKeyRequest(
    label="newsletter bot",
    scopes=["submissions:read"],
    resource_ids=models.CreateKeyRequestResourceIds.from_dict({"forms": [str(form.form_id)]}),
    expires_at=datetime.now(timezone.utc) + timedelta(days=7),
)
bot = call("keys.create", client=owner, status=201, body=bot)
assert bot.scopes == ["submissions:read"], bot
reader = generated.AuthenticatedClient(base_url=base_url, token=bot.key)
problem = call("pages.list", client=reader, status=403)
assert problem.required_scope == "pages:read", problem
# Problems of a known account carry its plan.
assert problem.field_meta.plan == "scale", problem
