"use strict";
const $ = id => document.getElementById(id);
const make = (tag, name, content) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (content !== undefined) made.textContent = content;
  return made;
};
