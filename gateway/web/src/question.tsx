/** A question of a running tool: a form, or an address that the person opens. A foreign server wrote all of its words. */

import type { api } from "everturn-client";
import type { ComponentChildren } from "preact";
import { useId, useMemo, useRef, useState } from "preact/hooks";
import type { ApprovalProps, AskedQuestion } from "./approval";
import { Deadline } from "./deadline";
import type { Entry, Field, Format, Problem } from "./form";
import { answerOf, firstEntry, formOf, isAnswer, MOST_FIELDS, MOST_OPTIONS } from "./form";
import { safeLink } from "./link";
import { useSending } from "./sending";
import { exact, Fault, isolated, Plain, Text, visible } from "./shown";
import { texts } from "./texts";

/** Characters of a label, and of a hint. */
const [MOST_IN_LABEL, MOST_IN_HINT] = [200, 1000];

/** Asks a person. The first answer counts, in whichever tab it was given. */
export function QuestionCard({ chat, asked, question, onAnswered }: ApprovalProps & { question: AskedQuestion }) {
  const { error, isSent, send } = useSending();
  const answer = (action: () => Promise<api.AnsweredApproval>) => send(action, () => (onAnswered?.(), false));
  const deny = () => answer(() => chat.deny(asked.request));
  const decline = <button type="button" disabled={isSent} onClick={deny}>{texts.question.decline}</button>;
  const parts = { isSent, decline, fault: error !== undefined && <p role="alert"><Fault error={error} /></p> };
  const approve = (answerText?: string) =>
    answer(() => chat.approve(asked.request, answerText === undefined ? {} : { answerText }));
  return (
    <div class="approval question" role="group" aria-label={texts.question.asks(isolated(asked.toolName))}>
      <header>
        <p class="asked">{texts.question.asks(isolated(asked.toolName))}</p>
        {asked.expiresAt !== undefined && <Deadline at={Date.parse(asked.expiresAt)} />}
      </header>
      {asked.by !== undefined && <p class="hint">{texts.needsOther}</p>}
      <div class="said" dir="auto"><Plain text={question.message} /></div>
      {question.url === undefined
        ? <AskedForm {...parts} schema={question.schema} onAnswer={approve} />
        : <Address {...parts} url={question.url} onDone={() => approve()} />}
    </div>
  );
}

interface PartProps {
  isSent: boolean;
  /** The button that declines. */
  decline: ComponentChildren;
  /** The error of the last answer. */
  fault: ComponentChildren;
}

/** An address, which nothing opens but the person. */
function Address({ url, isSent, decline, fault, onDone }: PartProps & { url: string; onDone: () => void }) {
  const link = safeLink(url);
  return (
    <>
      {link && <p class="host">{texts.question.host}: <strong>{exact(link.host)}</strong></p>}
      <Text text={link?.href ?? url} />
      {link
        ? <p><a href={link.href} target="_blank" rel="noopener noreferrer">{texts.question.open(exact(link.host))}</a></p>
        : <p class="hint">{texts.question.noLink}</p>}
      {fault}
      <div class="actions">
        <button type="button" class="main" disabled={isSent} onClick={onDone}>{texts.question.done}</button>
        {decline}
      </div>
    </>
  );
}

interface FormProps extends PartProps {
  schema: unknown;
  /** Takes the answer as JSON text. */
  onAnswer: (text: string) => void;
}

/** The form of a schema; a field for JSON when the schema has no form. */
function AskedForm({ schema, ...props }: FormProps) {
  // The inbox reads the question again and again, and the entries belong to the first reading.
  const form = useMemo(() => formOf(schema), []);
  if ("fields" in form) return <Fields {...props} fields={form.fields} />;
  const why = "tooMany" in form ? texts.question.tooMany(form.tooMany, MOST_FIELDS) : texts.question.unread;
  return <Whole {...props} why={why} schema={schema} />;
}

/** A field for each property. A mistake has its sentence when the person answers, and the first mistake has the focus. */
function Fields({ fields, isSent, decline, fault, onAnswer }: Omit<FormProps, "schema"> & { fields: readonly Field[] }) {
  const [entries, setEntries] = useState(() => fields.map(shownFirst));
  const [problems, setProblems] = useState<ReadonlyMap<number, Problem>>(new Map());
  const form = useRef<HTMLFormElement>(null);
  const enter = (at: number, entry: Entry) => {
    setEntries(entries.with(at, entry));
    setProblems(new Map([...problems].filter(([other]) => other !== at)));
  };
  const answer = (event: Event) => {
    event.preventDefault();
    if (isSent) return;
    const answered = answerOf(fields, entries);
    const found = new Map([...("problems" in answered ? answered.problems : []), ...halfWritten(form.current, fields)]);
    setProblems(found);
    if (found.size === 0 && "text" in answered) return onAnswer(answered.text);
    // The mark of the mistake is there after the next drawing.
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
  };
  return (
    <form ref={form} noValidate onSubmit={answer}>
      {fields.map((field, at) => (
        <Entered
          key={at}
          field={field}
          at={at}
          entry={entries[at] ?? ""}
          problem={problems.get(at)}
          onEnter={(entry) => enter(at, entry)}
        />
      ))}
      <p class="hint">{texts.question.goes}</p>
      {fault}
      <div class="actions">
        <button type="submit" class="main" disabled={isSent}>{texts.question.answer}</button>
        {decline}
      </div>
    </form>
  );
}

/** A default with characters that are not seen is not the person's answer before the person has written it. */
function shownFirst(field: Field): Entry {
  const entry = firstEntry(field);
  return typeof entry === "string" && exact(entry) !== entry ? "" : entry;
}

/** Dates of which the person has written a part: their fields have no value. */
function halfWritten(form: HTMLFormElement | null, fields: readonly Field[]): [number, Problem][] {
  const inputs = form?.querySelectorAll<HTMLInputElement>("input[data-at]") ?? [];
  return [...inputs].flatMap((input): [number, Problem][] => {
    const field = fields[Number(input.dataset["at"])];
    const isHalf = input.validity.badInput && field?.kind === "text" && field.format !== undefined;
    return isHalf ? [[Number(input.dataset["at"]), { is: field.format! }]] : [];
  });
}

interface EnteredProps {
  field: Field;
  at: number;
  entry: Entry;
  problem: Problem | undefined;
  onEnter: (entry: Entry) => void;
}

/** A field with its label, its hint, and the sentence about a mistake. */
function Entered({ field, at, entry, problem, onEnter }: EnteredProps) {
  const id = useId();
  const hint = hintOf(field);
  const required = field.isRequired && <span class="hint">{texts.question.required}</span>;
  const label = <><bdi>{cut(field.label, MOST_IN_LABEL)}</bdi> {required}</>;
  const described = [hint !== "" && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(" ") || undefined;
  const isInvalid = problem !== undefined;
  const marks = { "aria-describedby": described, "aria-invalid": isInvalid, "aria-required": field.isRequired, "data-at": at };
  const notes = (
    <>
      {hint !== "" && <p class="hint" id={`${id}-hint`}><bdi>{hint}</bdi></p>}
      {problem && <p class="problem" id={`${id}-problem`}>{sentenceOf(problem)}</p>}
    </>
  );
  if (field.kind === "several") return <Several {...{ field, entry, onEnter, label, notes, described, problem }} />;
  if (field.kind === "flag" && !field.mayBeOpen) {
    return (
      <>
        <label class="always">
          <input
            type="checkbox"
            {...marks}
            checked={entry === "true"}
            onChange={(event) => onEnter(String(event.currentTarget.checked))}
          />
          <span>{label}</span>
        </label>
        {notes}
      </>
    );
  }
  return (
    <>
      <label for={id}>{label}</label>
      <Control {...{ id, field, entry, onEnter, marks }} />
      {notes}
    </>
  );
}

interface ControlProps {
  id: string;
  field: Field;
  entry: Entry;
  onEnter: (entry: Entry) => void;
  marks: object;
}

/** What the person writes into, or chooses from. Long numbers stay as they are written, so numbers are written as texts. */
function Control({ id, field, entry, onEnter, marks }: ControlProps) {
  const value = String(entry);
  const common = { id, value, autocomplete: "off", ...marks };
  const onInput = (event: { currentTarget: { value: string } }) => onEnter(event.currentTarget.value);
  switch (field.kind) {
    case "text":
      if (field.isLong) return <textarea {...common} rows={3} onInput={onInput} />;
      return <input {...common} {...kindOfInput(field.format)} onInput={onInput} />;
    case "number":
      return <input {...common} type="text" inputMode={field.isWhole ? "numeric" : "decimal"} onInput={onInput} />;
    case "choice": {
      const options = field.options.map(({ label }, at): [string, string] => [String(at), cut(label, MOST_IN_LABEL)]);
      return <Select {...common} options={options} onInput={onInput} />;
    }
    case "flag":
      return <Select {...common} options={[["true", texts.question.yes], ["false", texts.question.no]]} onInput={onInput} />;
    default:
      return <textarea {...common} class="code" spellcheck={false} autocapitalize="off" rows={2} onInput={onInput} />;
  }
}

interface SelectProps {
  options: readonly [value: string, label: string][];
  value: string;
  onInput: (event: { currentTarget: { value: string } }) => void;
}

/** A list to choose one from, or none. */
function Select({ options, ...rest }: SelectProps) {
  return (
    <select {...rest}>
      <option value="">–</option>
      {options.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
    </select>
  );
}

/** Addresses are written as texts: a browser changes the letters of an address in a field of their own. */
function kindOfInput(format: Format | undefined) {
  switch (format) {
    case "date":
      return { type: "date", max: "9999-12-31" } as const;
    case "date-time":
      return { type: "datetime-local", step: 1, max: "9999-12-31T23:59:59" } as const;
    case "email":
      return { type: "text", inputMode: "email" } as const;
    case "uri":
      return { type: "text", inputMode: "url" } as const;
    default:
      return { type: "text" } as const;
  }
}

interface SeveralProps {
  field: Extract<Field, { kind: "several" }>;
  entry: Entry;
  onEnter: (entry: Entry) => void;
  label: ComponentChildren;
  notes: ComponentChildren;
  described: string | undefined;
  problem: Problem | undefined;
}

/** Boxes to check. A mistake leads to the first box. */
function Several({ field, entry, onEnter, label, notes, described, problem }: SeveralProps) {
  const chosen = typeof entry === "string" ? [] : entry;
  const check = (at: number, isChecked: boolean) =>
    onEnter(field.options.flatMap((_, other) => ((other === at ? isChecked : chosen.includes(other)) ? [other] : [])));
  return (
    <fieldset aria-describedby={described}>
      <legend>{label}</legend>
      {field.options.map((option, at) => (
        <label key={at} class="always">
          <input
            type="checkbox"
            aria-invalid={problem !== undefined && at === 0}
            checked={chosen.includes(at)}
            onChange={(event) => check(at, event.currentTarget.checked)}
          />
          <span><bdi>{cut(option.label, MOST_IN_LABEL)}</bdi></span>
        </label>
      ))}
      {notes}
    </fieldset>
  );
}

/** The whole answer as JSON, beside the schema. */
function Whole({ why, schema, isSent, decline, fault, onAnswer }: FormProps & { why: string }) {
  const [text, setText] = useState("{}");
  const [isChecked, setChecked] = useState(false);
  const isFine = isAnswer(text);
  const answer = () => (isFine ? onAnswer(text) : setChecked(true));
  return (
    <>
      <p class="hint">{why}</p>
      <Text text={JSON.stringify(schema, null, 2)} />
      <label>
        {texts.question.whole}
        <textarea
          class="code"
          aria-invalid={!isFine}
          rows={4}
          spellcheck={false}
          autocapitalize="off"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      {isChecked && !isFine && <p role="alert">{texts.question.noObject}</p>}
      <p class="hint">{texts.question.goes}</p>
      {fault}
      <div class="actions">
        <button type="button" class="main" disabled={isSent} onClick={answer}>{texts.question.answer}</button>
        {decline}
      </div>
    </>
  );
}

/** The server's hint, and a limit of the page with its reason. */
function hintOf(field: Field): string {
  const own = field.hint === undefined ? "" : cut(field.hint, MOST_IN_HINT);
  return `${own} ${limitOf(field)}`.trim();
}

function limitOf(field: Field): string {
  const { json, optionsAsJson, optionsAsText } = texts.question;
  if (field.kind === "text" && field.values) return optionsAsText(field.values.size, MOST_OPTIONS);
  if (field.kind !== "json") return "";
  return field.options === undefined ? json : optionsAsJson(field.options, MOST_OPTIONS);
}

function sentenceOf(problem: Problem): string {
  const { problems } = texts.question;
  return "bound" in problem ? problems[problem.is](problem.bound) : problems[problem.is]();
}

/** The beginning of a text of the server. */
function cut(text: string, most: number): string {
  return visible(text.length > most ? `${text.slice(0, most)}…` : text);
}
