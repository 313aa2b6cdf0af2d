(() => {
  const script = document.currentScript;
  const home = new URL(script.src).origin;
  const { form, mode, label, height, lang, theme: wanted, background, accent, radius } = script.dataset;
  const popup = mode === "popup";
  const src = new URL(`/f/${encodeURIComponent(form)}?embed=1`, home);
  const set = (name, value) => src.searchParams.set(name, value);
  const system = matchMedia("(prefers-color-scheme: dark)");
  // One rule for the form and the button, which is the server's: hexadecimal digits, and at most its radius.
  const color = /^#?(\w{3}){1,2}$/.test(accent) && "#" + accent.replace("#", "");
  const corner = Math.min(parseInt(radius), 24);
  const round = (usual) => `${corner >= 0 ? corner : usual}px`;
  if (lang) set("lang", lang);
  if (popup) set("form.popup", 1);
  if (color) set("form.accent", color);
  if (corner >= 0) set("form.radius", corner);
  // From the page's own URL only campaign parameters and prefilled fields are passed on.
  for (const [name, value] of new URLSearchParams(location.search)) {
    if (/^(utm_\w+|ref|\w+clk?id)$/.test(name)) set(name, value);
    else if (/^f_./.test(name)) set(name.slice(2), value);
  }
  /** The brightness of a CSS colour as browsers compute it, 0 to 1; undefined for a transparent one. */
  const brightness = (css) => {
    const [r, g, b, alpha = 1] = (css.replace("-p3", "").match(/[\d.]+/g) || []).map(Number);
    // Lightness comes first in `lab(…)`, `oklch(…)` and the like.
    if (alpha >= 0.5) return /^o/.test(css) ? r : /^l/.test(css) ? r / 100 : (0.3 * r + 0.6 * g + 0.1 * b) / (/^r/.test(css) ? 255 : 1);
  };
  /** The theme of the page behind the form: that of the first background around it, else of the browser's canvas. */
  const behind = () => {
    for (let node = box.parentElement || document.body; node; node = node.parentElement) {
      const light = brightness(getComputedStyle(node).backgroundColor);
      if (light >= 0) return light < 0.5 ? "dark" : "light";
    }
    const scheme = getComputedStyle(document.documentElement).colorScheme;
    return /dark/.test(scheme) && (system.matches || !/light/.test(scheme)) ? "dark" : "light";
  };
  const frame = document.createElement("iframe");
  frame.title = label || "Form";
  frame.loading = "lazy";
  frame.sandbox = "allow-forms allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation";
  frame.style.cssText = `display:block;width:100%;border:0;height:${parseInt(height) || 420}px`;
  const button = (textContent, css, onclick) => {
    const node = Object.assign(document.createElement("button"), { type: "button", textContent, onclick });
    node.style.cssText = css;
    return node;
  };
  let box = frame;
  if (popup) {
    const dialog = document.createElement("dialog");
    dialog.ariaLabel = frame.title;
    dialog.style.cssText = `width:min(40rem,94vw);border:0;border-radius:${round(16)};padding:0;overflow:hidden;background:none`;
    // The form scrolls within the frame, with its button in sight.
    frame.style.cssText += ";max-height:90dvh";
    const close = button(
      "×",
      "position:absolute;top:8px;right:8px;width:32px;height:32px;font-size:20px;border:0;border-radius:8px;color:#777;background:#8883;cursor:pointer",
      () => dialog.close(),
    );
    close.ariaLabel = "Close";
    dialog.append(close, frame);
    const open = button(
      label || "Open form",
      `font:inherit;font-weight:600;padding:.6em 1.2em;border:0;border-radius:${round(8)};background:#2f4fdb;cursor:pointer`,
      () => dialog.showModal(),
    );
    open.className = "wr-open";
    // As a property, which takes nothing but a colour.
    open.style.backgroundColor = color;
    open.style.color = brightness(open.style.backgroundColor) < 0.6 ? "#fff" : "#0f1525";
    box = document.createElement("span");
    box.append(open, dialog);
  }
  let theme, solid;
  const tell = () => frame.src && frame.contentWindow.postMessage({ v: "wr1", type: "theme", theme, solid }, home);
  /** Follows the page. A frame is transparent only if its colour scheme is that of the page in it. */
  const paint = () => {
    const page = behind();
    const next = /^(dark|light)$/.test(wanted) ? wanted : page;
    const own = background === "solid" || (background !== "transparent" && next !== page);
    if (next === theme && own === solid) return;
    frame.style.colorScheme = theme = next;
    solid = own;
    tell();
  };
  const put = () => {
    // Nothing is displayed in a head.
    if (document.body.contains(script)) script.after(box);
    else document.body.append(box);
    paint();
    set("form.theme", theme);
    if (solid) set("form.background", "solid");
    frame.src = src;
    const watch = new MutationObserver(paint);
    watch.observe(document.documentElement, { attributes: true });
    watch.observe(document.body, { attributes: true });
    document.addEventListener("transitionend", paint);
    system.addEventListener("change", paint);
  };
  if (document.body) put();
  else addEventListener("DOMContentLoaded", put);
  addEventListener("message", ({ origin, source, data }) => {
    if (origin !== home || source !== frame.contentWindow || data?.v !== "wr1") return;
    if (data.type === "height") frame.style.height = `${Math.min(Math.max(+data.height || 0, 50), 2e4)}px`;
    if (data.type === "wrong") frame.scrollIntoView({ block: "nearest" });
    // A page that was loaded before the theme changed.
    if (data.theme !== theme) tell();
    if (data.type === "submitted") {
      const detail = { formId: form, redirectUrl: data.onward };
      if (frame.dispatchEvent(new CustomEvent("wr:submitted", { bubbles: true, cancelable: true, detail })) && /^https?:/.test(data.onward)) location.assign(data.onward);
    }
  });
})();
