// The script of a hosted form, which also works without it: reports the page's height and the submission to an embedding
// page, prevents a second click from submitting twice, and solves a proof of work if the form requires one.
const framed = window.parent !== window;
// Any embedding page may receive the height and the submission.
const tell = (message) => framed && parent.postMessage({ v: "wr1", ...message }, "*");

const page = document.documentElement;
if (framed) {
  const measure = () => tell({ type: "height", height: Math.ceil(page.getBoundingClientRect().height), theme: page.dataset.theme });
  new ResizeObserver(measure).observe(page);
  // The embedding page changed its theme. Nothing else can be told from there.
  addEventListener("message", ({ source, data }) => {
    if (source !== parent || data?.v !== "wr1" || data.type !== "theme" || !/^(light|dark)$/.test(data.theme)) return;
    page.dataset.theme = data.theme;
    document.body.classList.toggle("solid", data.solid === true);
    // Kept for the page after this one.
    const look = document.querySelector("input[name='form.look']");
    if (!look) return;
    const kept = new URLSearchParams(look.value);
    kept.set("form.theme", data.theme);
    if (data.solid === true) kept.set("form.background", "solid");
    else kept.delete("form.background");
    look.value = kept;
  });
}

const sent = document.querySelector("[data-submitted]");
if (sent) tell({ type: "submitted", onward: sent.dataset.onward ?? null });

const wrong = document.getElementById("wrong");
if (wrong) {
  wrong.focus({ preventScroll: framed });
  tell({ type: "wrong" });
}

const form = document.querySelector("form");
if (form) {
  // A field named `submit` or `dataset` hides the form's own property, so neither is read from the form.
  const button = document.querySelector("form button");
  const proof = document.querySelector("form input[name='form.proof']");
  const attribute = (name) => Element.prototype.getAttribute.call(form, name);
  let busy = false;
  const rest = (is) => {
    busy = is;
    if (is) button.setAttribute("aria-disabled", "true");
    else button.removeAttribute("aria-disabled");
  };
  document.addEventListener("submit", async (event) => {
    if (busy) return event.preventDefault();
    rest(true);
    if (!proof || proof.value) return;
    event.preventDefault();
    const said = document.getElementById("proving");
    said.textContent = attribute("data-proving");
    proof.value = await work(attribute("data-challenge"));
    said.textContent = "";
    HTMLFormElement.prototype.submit.call(form);
  });
  // The visitor navigated back. A proof can be used once.
  addEventListener("pageshow", ({ persisted }) => {
    rest(false);
    if (persisted && proof) proof.value = "";
  });
}

/** Returns a proof, or an empty string if none can be computed; the server then rejects or flags the submission. */
async function work(address) {
  try {
    let answer = await fetch(address);
    if (!answer.ok) answer = await fetch(address);
    const puzzle = await answer.json();
    const worker = new Worker("/proof.js");
    return await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = reject;
      worker.postMessage(puzzle);
    });
  } catch {
    return "";
  }
}
