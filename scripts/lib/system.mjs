// The system's package manager: which packages are missing, and installing them when that is allowed without asking.

import { Stop, must, run, say, which } from './shell.mjs';

/** Whether this system installs packages with apt. */
export function hasApt() {
  return process.platform === 'linux' && which('apt-get') !== null;
}

/** Whether all the named Debian packages are installed. */
export async function aptInstalled(packages) {
  const { code, output } = await run('dpkg-query', ['-W', '-f', '${Status}\\n', ...packages], { quiet: true });
  return code === 0 && output.trim().split('\n').every((line) => line.startsWith('install ok installed'));
}

/** Installs the packages; without root it stops with the one command line that a person has to run. */
export async function aptInstall(packages) {
  const install = ['install', '-y', '--no-install-recommends', ...packages];
  if (process.getuid?.() !== 0) {
    throw new Stop(`these system packages are missing; install them, then run this again:\n  sudo apt-get update && sudo apt-get ${install.join(' ')}`);
  }
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  say(`setup: installing ${packages.join(' ')}`);
  await must('updating the package lists', 'apt-get', ['update'], { env, quiet: true });
  await must('installing system packages', 'apt-get', install, { env, quiet: true });
}
