// One idea: runs that are over. Their lines are in the journal, and memory has only where: so that
// nobody who forgets late makes the keeper grow.
#include <stdlib.h>
#include <string.h>

#include "keeper.h"

typedef struct {
  uint64_t serial;
  uint32_t hash;  // of the id
  uint32_t at;    // where its line begins
} Past;

static Past* past;
static size_t count;
static size_t room;

size_t PastCount(void) { return count; }

// FNV-1a.
static uint32_t HashOf(const char* id) {
  uint32_t hash = 2166136261;
  for (; *id != '\0'; id++) hash = (hash ^ (uint8_t)*id) * 16777619;
  return hash;
}

// The first whose serial is greater.
static size_t FirstAfter(uint64_t serial) {
  size_t low = 0, high = count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (past[middle].serial > serial)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

void PastAdd(const Run* run, uint32_t at) {
  if (count == room) {
    room = room == 0 ? 64 : room * 2;
    past = Need(realloc(past, room * sizeof *past));
  }
  const size_t place = FirstAfter(run->serial);
  memmove(past + place + 1, past + place, (count - place) * sizeof *past);
  past[place] = (Past){run->serial, HashOf(run->id), at};
  count++;
}

static bool Load(size_t index, Run* run) {
  if (!JournalReadPast(past[index].at, run)) return false;
  run->serial = past[index].serial;
  return true;
}

static bool Find(const char* id, size_t* index, Run* run) {
  const uint32_t hash = HashOf(id);
  for (size_t i = count; i-- > 0;) {
    if (past[i].hash != hash || !Load(i, run) || strcmp(run->id, id) != 0) continue;
    *index = i;
    return true;
  }
  return false;
}

bool PastFind(const char* id, Run* run) {
  size_t index;
  return Find(id, &index, run);
}

bool PastRemove(const char* id) {
  size_t index;
  Run run;
  if (!Find(id, &index, &run)) return false;
  count--;
  memmove(past + index, past + index + 1, (count - index) * sizeof *past);
  return true;
}

bool PastAfter(uint64_t serial, Run* run) {
  for (size_t i = FirstAfter(serial); i < count; i++) {
    if (Load(i, run)) return true;
  }
  return false;
}

void PastMoved(const uint32_t* places) {
  for (size_t i = 0; i < count; i++) past[i].at = places[i];
}
