// What a hosted form does on top of what it does without script: it tells a page that frames it how high it is and
// when it was sent, keeps an impatient second click from sending it twice, and works out a proof where one is asked for.
const framed = window.parent !== window;
// Whoever frames the form may hear this: how high it is, and that it was sent.
const tell = (message) => framed && parent.postMessage({ v: "wr1", ...message }, "*");

const page = document.documentElement;
if (framed) {
  const measure = () => tell({ type: "height", height: Math.ceil(page.getBoundingClientRect().height) });
  new ResizeObserver(measure).observe(page);
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
  // A field may be called `submit` or `dataset`, and then stands where the form's own would: it is asked for neither.
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
  // Back from the next page, which may not have come. A proof is good once.
  addEventListener("pageshow", ({ persisted }) => {
    rest(false);
    if (persisted && proof) proof.value = "";
  });
}

/** A proof; empty if none can be had, which whoever takes the form will see to. */
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
