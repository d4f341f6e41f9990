// A situation in the fragment of an address: JSON, compressed, in the letters that addresses have.
// The browser doesn't send fragments to any server.

export const LONGEST = 1_500_000;

async function through(bytes, stream) {
  const packed = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

export async function encode(situation) {
  const bytes = new TextEncoder().encode(JSON.stringify(situation));
  const packed = await through(bytes, new CompressionStream("deflate-raw"));
  let letters = "";
  for (let at = 0; at < packed.length; at += 8192) {
    letters += String.fromCharCode(...packed.subarray(at, at + 8192));
  }
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function decode(fragment) {
  const letters = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
  const packed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const bytes = await through(packed, new DecompressionStream("deflate-raw"));
  return JSON.parse(new TextDecoder().decode(bytes));
}
