// Starts hydra-lsp for models and passes the settings of `hydra` on to it.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

/** What the server knows of the settings; it takes no others. */
function settings() {
  const all = vscode.workspace.getConfiguration("hydra");
  return Object.fromEntries(
    ["preset", "batch", "seq", "set", "routing"].map((name) => [name, all.get(name)]));
}

async function start() {
  const command = vscode.workspace.getConfiguration("hydra").get("server");
  client = new LanguageClient(
    "hydra", "Hydra", { command, args: [] },
    { documentSelector: [{ language: "hydra" }], initializationOptions: settings() });
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(
      `${command} does not start: ${error.message}. The setting hydra.server says where it is.`);
  }
}

async function restart() {
  await client?.stop().catch(() => {}); // one that never started
  await start();
}

function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("hydra.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("hydra.server"))
        restart();
      else if (change.affectsConfiguration("hydra") && client?.isRunning())
        client.sendNotification("workspace/didChangeConfiguration", { settings: { hydra: settings() } });
    }));
  return start();
}

function deactivate() {
  return client?.stop().catch(() => {});
}

module.exports = { activate, deactivate };
