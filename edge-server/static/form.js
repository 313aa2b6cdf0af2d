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
  const button = form.querySelector("button");
  let busy = false;
  form.addEventListener("submit", (event) => {
    if (busy) return event.preventDefault();
    busy = true;
    button.setAttribute("aria-disabled", "true");
  });
  // Back from the next page, which may not have come.
  addEventListener("pageshow", () => {
    busy = false;
    button.removeAttribute("aria-disabled");
  });
}
