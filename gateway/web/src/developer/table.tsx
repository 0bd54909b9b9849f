/** A table of records. */

interface TableProps {
  label: string;
  columns: readonly string[];
  rows: readonly (readonly (string | number)[])[];
}

export function Table({ label, columns, rows }: TableProps) {
  if (rows.length === 0) return null;
  return (
    <div class="wide" tabIndex={0} role="region" aria-label={label}>
      <table class="records">
        <caption>{label}</caption>
        <thead><tr>{columns.map((column) => <th scope="col" key={column}>{column}</th>)}</tr></thead>
        <tbody>{rows.map((row, at) => <tr key={at}>{row.map((cell, column) => <td key={column}>{cell}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}
