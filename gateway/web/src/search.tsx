/** The field of a search, with its icon. */

import { Icon } from "./icons";

interface SearchProps {
  /** The name of the search, which the empty field shows, too. */
  label: string;
  value: string;
  onSearch: (text: string) => void;
}

export function Search({ label, value, onSearch }: SearchProps) {
  return (
    <div class="find">
      <Icon name="search" />
      <input
        type="search"
        class="search"
        aria-label={label}
        placeholder={label}
        value={value}
        onInput={(event) => onSearch(event.currentTarget.value)}
      />
    </div>
  );
}
