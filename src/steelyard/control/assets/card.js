for (const card of document.querySelectorAll("section")) {
  const sum = card.querySelector(".sum"), at = card.dataset;
  const tell = () => {
    let points = Number(at.start);
    for (const row of card.querySelectorAll("tr.on")) points += Number(row.dataset.points);
    const odds = 2 ** ((points - Number(at.zero)) / Number(at.double));
    sum.textContent = `${points} points: ${(100 / (1 + 1 / odds)).toFixed(1)} %`;
  };
  card.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-points]");
    if (!row) return;
    const was = row.classList.contains("on");
    for (const other of row.parentNode.children) other.classList.remove("on");
    row.classList.toggle("on", !was);
    tell();
  });
  tell();
}
