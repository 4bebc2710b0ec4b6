"use strict";
for (const plots of document.querySelectorAll(".plots")) {
  const keys = [...plots.querySelectorAll(".legend label")];
  const curves = key => plots.querySelectorAll(".chart .s" + key.dataset.s);
  const show = (key, on) => {
    key.querySelector("input").checked = on;
    for (const curve of curves(key)) curve.classList.toggle("off", !on);
  };
  const heat = (key, on) => {
    for (const chart of plots.querySelectorAll(".chart"))
      chart.classList.toggle("hot", on);
    for (const curve of curves(key)) curve.classList.toggle("on", on);
  };
  for (const key of keys) {
    key.addEventListener("change", () => show(key, key.querySelector("input").checked));
    key.addEventListener("mouseenter", () => heat(key, true));
    key.addEventListener("mouseleave", () => heat(key, false));
  }
  for (const button of plots.querySelectorAll("[data-show]")) {
    const what = button.dataset.show;
    button.addEventListener("click", () => {
      for (const key of keys) {
        const ours = !key.querySelector(".key .thin");
        show(key, what === "all" || (what === "ours" && ours));
      }
    });
  }
}
