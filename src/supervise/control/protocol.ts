import type { Applied, ServiceStatus } from '../../supervisor/index.js';
import type { ServiceStory } from '../ends/service-story.js';

/** The socket, in the folder of the supervisor. */
export const SOCKET_NAME = 'control.sock';

/** Longer questions are refused. */
export const MOST_QUESTION_BYTES = 64 * 1024;

/** A service as the command shows it. */
export interface ServiceView extends ServiceStatus {
  /** Its end ends the container. */
  isMain: boolean;
  command: string[];
  /** The files of its output, if it has any. */
  logs: string[];
  /** What happened to it last. */
  lastStory: ServiceStory | null;
}

/** What the supervisor says of itself. */
export interface SupervisorView {
  pid: number;
  version: string;
  config: string;
  /** What is wrong with the configuration; `null`: it is what runs. */
  configError: string | null;
  keeperPid: number | null;
  keeperVersion: string | null;
  /** What limits it. */
  warnings: string[];
}

/** What became of one of the services that were asked for. */
export interface DoneService {
  name: string;
  pid: number | null;
  phase: string;
  error: { code: string; message: string } | null;
}

/** What a configuration changes. */
export interface AppliedConfig extends Applied {
  /** The options that differ of those that change. */
  differences: Record<string, string[]>;
  /** Those of them that are stopped and started for it. */
  restarted: string[];
  isDryRun: boolean;
}

/** What can be asked, and what is answered. Dates are texts on the way. */
export interface Questions {
  list: { question: object; answer: { supervisor: SupervisorView; services: ServiceView[] } };
  story: { question: { name: string }; answer: { service: ServiceView; stories: ServiceStory[] } };
  start: {
    question: { names: string[] | null; timeoutMs?: number };
    answer: { services: DoneService[] };
  };
  stop: {
    question: { names: string[] | null; graceMs?: number; until?: 'start' | 'reboot' | 'close' };
    answer: { services: DoneService[] };
  };
  restart: {
    question: { names: string[] | null; timeoutMs?: number };
    answer: { services: DoneService[] };
  };
  apply: { question: { dryRun: boolean }; answer: AppliedConfig };
  'upgrade-keeper': {
    question: object;
    answer: { pid: number; version: string; before: string };
  };
}

export type QuestionName = keyof Questions;

/** What happens instead of an answer. */
export interface Refusal {
  error: { code: string; message: string };
}
