/** Pictures that tests show. */

/** A picture that is empty, and as large as it says. */
export function gif(width: number, height: number): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt16LE(width, 0);
  size.writeUInt16LE(height, 2);
  const rest = "800000" + "000000ffffff" + "2c00000000010001000002024401003b";
  return Buffer.concat([Buffer.from("GIF89a"), size, Buffer.from(rest, "hex")]);
}
