(() => {
  const script = document.currentScript;
  const home = new URL(script.src).origin;
  const { form, mode, label, height } = script.dataset;
  const src = new URL(`/f/${encodeURIComponent(form)}?embed=1`, home);
  const lang = script.dataset.lang;
  if (lang) src.searchParams.set("lang", lang);
  // From the page's own URL only campaign parameters and prefilled fields are passed on.
  for (const [name, value] of new URLSearchParams(location.search)) {
    if (/^(utm_\w+|ref|gclid|fbclid|msclkid|ttclid)$/.test(name)) src.searchParams.set(name, value);
    else if (/^f_./.test(name)) src.searchParams.set(name.slice(2), value);
  }
  const frame = document.createElement("iframe");
  frame.title = label || "Form";
  frame.loading = "lazy";
  frame.setAttribute(
    "sandbox",
    "allow-forms allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation",
  );
  frame.style.cssText = `display:block;width:100%;border:0;height:${parseInt(height) || 420}px`;
  frame.src = src;
  let box = frame;
  let place = script.parentNode;
  if (mode === "popup") {
    const dialog = document.createElement("dialog");
    dialog.setAttribute("aria-label", frame.title);
    dialog.style.cssText = "width:min(40rem,94vw);max-height:90vh;border:0;border-radius:16px;padding:16px";
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "×";
    close.setAttribute("aria-label", "Close");
    close.style.cssText = "float:right;width:32px;height:32px;border:0;border-radius:8px;font-size:20px;cursor:pointer";
    close.onclick = () => dialog.close();
    dialog.append(close, frame);
    const open = document.createElement("button");
    open.type = "button";
    open.textContent = label || "Open form";
    open.className = "wr-open";
    open.style.cssText =
      "font:inherit;font-weight:600;padding:.6em 1.2em;border:0;border-radius:8px;color:#fff;background:#2f4fdb;cursor:pointer";
    open.onclick = () => dialog.showModal();
    box = document.createElement("span");
    box.append(open, dialog);
  }
  const put = () => {
    // Nothing is displayed in a head.
    if (!place || place === document.head) document.body.append(box);
    else script.after(box);
  };
  if (document.body) put();
  else addEventListener("DOMContentLoaded", put);
  addEventListener("message", ({ origin, source, data }) => {
    if (origin !== home || source !== frame.contentWindow || data?.v !== "wr1") return;
    if (data.type === "height") frame.style.height = `${Math.min(Math.max(+data.height || 0, 50), 20000)}px`;
    if (data.type === "wrong") frame.scrollIntoView({ block: "nearest" });
    if (data.type === "submitted") {
      const detail = { formId: form, redirectUrl: data.onward };
      const goes = frame.dispatchEvent(new CustomEvent("wr:submitted", { bubbles: true, cancelable: true, detail }));
      if (goes && /^https?:/.test(data.onward)) location.assign(data.onward);
    }
  });
})();
