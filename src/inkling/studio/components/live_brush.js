// Paints numbers that change (see live_figures.js), in a thread of its own: the page is not laid out again for them.
let [pen, apart, next, look] = [null, 0, 0, null];
let waiting = []; // what is still to be shown
let said = {}; // what should be seen
let seen = {}; // what is: key → words

function show() {
  if (!look) return;
  for (const [key, left, top, height, room] of look.places) {
    const words = said[key]?.[0] ?? "";
    if (seen[key] === words) continue;
    pen.clearRect(left, top, room, height);
    const { fontBoundingBoxAscent, fontBoundingBoxDescent } = pen.measureText(words);
    const [above, below] = [Math.round(fontBoundingBoxAscent), Math.round(fontBoundingBoxDescent)]; // as text is placed
    pen.fillText(words, left, top + Math.floor((height - above - below) / 2) + above);
    seen[key] = words;
  }
}

function play() {
  said = waiting.shift();
  show();
  next = waiting.length ? setTimeout(play, apart) : 0;
}

function place(data) {
  look = data;
  const { width, height, ratio, font, colour, places } = look;
  pen.canvas.width = Math.round(width * ratio); // empties it
  pen.canvas.height = Math.round(height * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  [pen.font, pen.fillStyle] = [font, colour];
  places.forEach((one, i) => {
    const beside = places[i + 1]; // up to the next one in its line, or to the edge
    one.push((beside && beside[2] === one[2] ? beside[1] : width) - one[1]);
  });
  seen = {};
  show();
}

onmessage = ({ data }) => {
  if (data.canvas) {
    pen = data.canvas.getContext("2d");
    apart = data.apart;
  } else if (data.places) {
    place(data);
  } else {
    clearTimeout(next); // what was still to be shown is older and left out
    waiting = data.played;
    if (waiting.length) play();
  }
};
