for (const table of document.querySelectorAll("table")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy as CSV";
  button.addEventListener("click", async () => {
    const cell = (c) => '"' + c.innerText.trim().replaceAll('"', '""') + '"';
    const text = [...table.rows].map((row) => [...row.cells].map(cell).join(",")).join("\n");
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.body.appendChild(document.createElement("textarea"));
      area.value = text;
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    button.textContent = done ? "Copied" : "Could not copy";
  });
  table.parentElement.before(button);
  const heads = [...table.tHead.rows[0].cells].map((c) => c.innerText);
  for (const row of table.tBodies[0].rows) for (const c of row.cells) c.dataset.name = heads[c.cellIndex];
  table.className = "stacked"; // on a phone
}
