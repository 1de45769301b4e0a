import { LineProcess } from './programs';

afterAll(() => LineProcess.endAll());
