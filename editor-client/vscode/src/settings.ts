/** Which values of section `haversack` the server gets: those somebody set, so that its own defaults stay its own. */

export interface Inspected {
  readonly globalValue?: unknown;
  readonly workspaceValue?: unknown;
}

/** Settings of the extension itself, which the server does not know. */
export const OWN = ['haversack.path', 'haversack.interpreter', 'haversack.trace.server'];

/** Whoever changes these wants another server process. */
export const STARTING = ['haversack.path', 'haversack.interpreter'];

// Their layers add up: a workspace can restrict more files, never fewer.
const GROWING = ['haversack.privacy.restrictedPaths', 'haversack.privacy.remote.blockedPaths'];

export function serverSettings(
  names: readonly string[],
  inspect: (name: string) => Inspected | undefined,
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const name of names.filter((each) => !OWN.includes(each))) {
    const { globalValue, workspaceValue } = inspect(name) ?? {};
    if (GROWING.includes(name) && Array.isArray(globalValue) && Array.isArray(workspaceValue)) {
      values[name] = [...new Set([...globalValue, ...workspaceValue])];
    } else if (workspaceValue !== undefined || globalValue !== undefined) {
      values[name] = workspaceValue ?? globalValue;
    }
  }
  return values;
}

/** `${workspaceFolder}`, `${userHome}`, `${env:NAME}` and a leading `~` in a setting that names a program. */
export function expand(text: string, folder: string, home: string, env: NodeJS.ProcessEnv): string {
  return text
    .replace(/^~(?=$|[/\\])/, home)
    .replaceAll('${workspaceFolder}', folder)
    .replaceAll('${userHome}', home)
    .replace(/\$\{env:(\w+)\}/g, (_, name: string) => env[name] ?? '');
}
