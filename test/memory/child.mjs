// Opens a memory store in a child process of the conformance kit.
import { memoryStore } from "holdfast/memory";

export const openStore = () => memoryStore();
