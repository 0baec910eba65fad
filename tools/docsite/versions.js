const versions = %s;
const me = document.currentScript, root = new URL(".", me.src).href;
const [version, ...rest] = location.href.slice(root.length).split(/[#?]/)[0].split("/");
const page = rest.join("/");
const select = document.createElement("select");
select.style.cssText = "display: block; margin: .5rem auto; font: inherit";
select.setAttribute("aria-label", "Version of the documentation");
for (const name of Object.keys(versions)) select.add(new Option(name, name, false, name === version));
select.onchange = () => {
  const there = versions[select.value].includes(page) ? page : "index.html";
  location.href = root + select.value + "/" + there;
};
(document.querySelector(".sidebar-brand") ?? document.body).after(select);
