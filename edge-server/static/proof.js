// Solves a proof of work in a worker, so that the page stays responsive. Returns an empty string if it fails.
onmessage = ({ data }) => solve(data).then(postMessage, () => postMessage(""));

async function solve({ challenge, puzzles, bits }) {
  const encoder = new TextEncoder();
  const solutions = [];
  for (let at = 0; at < puzzles; at++) {
    for (let number = 0; ; number++) {
      const digest = await crypto.subtle.digest("SHA-256", encoder.encode(`${challenge}:${at}:${number}`));
      if (new DataView(digest).getUint32(0) >>> (32 - bits) === 0) {
        solutions.push(number);
        break;
      }
    }
  }
  return `${challenge}:${solutions}`;
}
