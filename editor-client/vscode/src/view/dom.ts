/** Small pieces of the page. */

type Child = Node | string | null | undefined | false;

/** An element with attributes; text is always text, never markup. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | boolean | undefined> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((each): each is Node | string => each !== null && each !== undefined && each !== false));
  return element;
}

export function icon(name: string, extra = ''): HTMLElement {
  return el('span', { class: `codicon codicon-${name} ${extra}`, 'aria-hidden': 'true' });
}

export function iconButton(name: string, label: string, action: () => void, pressed?: boolean): HTMLButtonElement {
  const state = pressed === undefined ? {} : { 'aria-pressed': String(pressed) };
  const button = el('button', { class: 'icon', type: 'button', title: label, 'aria-label': label, tabindex: '-1', ...state }, icon(name));
  button.addEventListener('click', (event) => {
    event.stopPropagation();
    action();
  });
  return button;
}

/** A bar filled to a share of 0 to 1. Styles are set by script: the page's policy allows none in attributes. */
export function meter(share: number, label: string): HTMLElement {
  const fill = el('i');
  fill.style.width = `${Math.max(share > 0 ? 3 : 0, Math.min(100, 100 * share))}%`;
  return el('span', { class: 'meter', title: label }, fill);
}

export const count = (value: number): string => Math.round(value).toLocaleString('en');
