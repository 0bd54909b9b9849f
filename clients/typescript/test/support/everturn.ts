/** A real gateway with everything behind it: `everturn dev` on free ports, in a folder of its own. */

import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";

/** A gateway that runs. */
export interface RealGateway {
  readonly url: string;
  stop(): void;
}

/** Starts `everturn dev` with this configuration, and waits until it answers. */
export async function startGateway(folder: string, config: string): Promise<RealGateway> {
  mkdirSync(folder);
  writeFileSync(`${folder}/everturn.toml`, config);
  const address = `127.0.0.1:${await freePort()}`;
  const temporal = await freePort();
  const options = ["--listen", address, "--temporal-port", `${temporal}`, "--data-dir", "data"];
  const running = spawn(process.env["EVERTURN_BIN"] ?? "", ["dev", "--config", "everturn.toml", ...options], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  running.stdout.on("data", (data) => (printed += data));
  running.stderr.on("data", (data) => (printed += data));
  const url = `http://${address}`;
  const isReady = () => fetch(`${url}/readyz`).then((response) => response.ok, () => false);
  while (!(await isReady())) {
    if (running.exitCode !== null) throw new Error(`everturn dev has ended:\n${printed}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { url, stop: () => void running.kill("SIGTERM") };
}

/** A port on which nobody listens. Temporal's web page takes the one 1000 above. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => (port < 64_000 ? resolve(port) : resolve(freePort())));
    });
  });
}
