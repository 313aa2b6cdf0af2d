// Works out a proof beside the page, which stays as quick as it was. What can't be worked out is empty.
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
