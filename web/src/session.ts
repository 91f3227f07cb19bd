// Who is signed in: the token that requests need which change something, the control in the header, and the way to the
// sign-in page.
import type * as Contract from './contract';
import { $, make, say } from './dom';

/** Nobody is signed in, and nobody could be: a server without users, or one that does not answer. */
const NOBODY: Contract.Session = { sign_in: false };

let asked: Promise<Contract.Session> | null = null;

/** The session of this page, asked for once: signing in and out open the page anew. */
function current(): Promise<Contract.Session> {
  asked ??= fetch('/session', { headers: { accept: 'application/json' }, cache: 'no-store' })
    .then((response) => (response.ok ? (response.json() as Promise<Contract.Session>) : NOBODY))
    .catch(() => NOBODY);
  return asked;
}

/** Whether the caller is one of these, or the server lets everyone do everything. The server has the last word. */
const isOne = async (roles: readonly string[]): Promise<boolean> => {
  const { sign_in: signIn, role } = await current();
  return role ? roles.includes(role) : !signIn;
};

/** Whether to offer writing events. */
export const mayWrite = (): Promise<boolean> => isOne(['writer', 'admin', 'operator']);

/** Whether to offer making collections. */
export const mayManage = (): Promise<boolean> => isOne(['admin', 'operator']);

/** Who looks at the page: anyone, on a server without users; nobody who is signed in; or a user. */
export type SignInState = 'anyone' | 'signed-out' | 'user';

export const standing = async (): Promise<SignInState> => {
  const { user, sign_in: signIn } = await current();
  return user ? 'user' : signIn ? 'signed-out' : 'anyone';
};

/** A request with the session's token. A read needs none: its empty header tells the server that a script asks. */
export async function signed(init: RequestInit): Promise<RequestInit> {
  const reads = !init.method || init.method === 'GET';
  const headers = new Headers(init.headers);
  headers.set('x-csrf-token', reads ? '' : ((await current()).csrf_token ?? ''));
  return { ...init, headers };
}

/** Leads to the sign-in page, and back here, where the server has users. */
export async function signInAgain(): Promise<void> {
  // What was known may be why the request was refused.
  asked = null;
  if ((await current()).sign_in) location.assign(loginPath());
}

const loginPath = (): string => `/login?next=${encodeURIComponent(location.pathname + location.search + location.hash)}`;

/** Whether to offer the pages of the server itself. */
const mayOperate = (): Promise<boolean> => isOne(['operator']);

/** Completes the header as pages made by the server have it: the user, the link to sign in or out, and to an operator `Server`. */
export async function wireSession(): Promise<void> {
  const { user, sign_in: signIn } = await current();
  if (await mayOperate()) document.querySelector('.pages')?.append(make('a', '', 'Server', { href: '/admin/load' }));
  const account = $('account');
  account.hidden = !user && !signIn;
  const [shown, name, link] = [account.querySelector('span'), account.querySelector('b'), account.querySelector('a')];
  if (!shown || !name || !link) return;
  shown.hidden = !user;
  say(name, user ?? '');
  name.title = user ? `Signed in as ${user}` : '';
  say(link, user ? 'Account' : 'Sign in');
  // The address holds the view, which changes.
  link.addEventListener('click', () => (link.href = loginPath()));
}
