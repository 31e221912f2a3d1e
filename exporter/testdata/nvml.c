/* A small libnvidia-ml.so.1 with two GPUs for tests. FAKE_NVML names a file of words that is read
 * at every call: init18, init9, nogpu, count1, hang1, lost1, dead, grow; initblocks and countblocks
 * are a driver that hangs as a whole. The macro OLD leaves out what a driver of long ago lacks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned long long time; union { unsigned u; unsigned long long ull; } value; } sample;

static int says(const char *word)
{
    char words[256] = "";
    const char *path = getenv("FAKE_NVML");
    FILE *f = path ? fopen(path, "r") : NULL;
    if (f) {
        words[fread(words, 1, sizeof words - 1, f)] = 0;
        fclose(f);
    }
    return strstr(words, word) != NULL;
}

static int state(void *device)
{
    if (says("dead")) return 999;
    if (device == (void *)2 && says("lost1")) return 15;
    while (device == (void *)2 && says("hang1")) usleep(20000);
    return 0;
}

static void block(const char *word) { while (says(word)) usleep(20000); }

int nvmlInit_v2(void) { block("initblocks"); return says("init18") ? 18 : says("init9") ? 9 : says("dead") ? 999 : 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int r) { return "text of the driver"; }
int nvmlSystemGetDriverVersion(char *v, unsigned n) { strncpy(v, "610.57", n); return 0; }
int nvmlDeviceGetCount_v2(unsigned *n)
{
    block("countblocks");
    if (says("dead")) return 999;
    *n = says("nogpu") ? 0 : says("count1") ? 1 : 2;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(unsigned long)(i + 1); return says("dead") ? 999 : 0; }
int nvmlDeviceGetUUID(void *d, char *u, unsigned n) { snprintf(u, n, "GPU-%d", (int)(unsigned long)d); return 0; }
int nvmlDeviceGetName(void *d, char *u, unsigned n) { strncpy(u, "NVIDIA Fake", n); return 0; }
int nvmlDeviceGetUtilizationRates(void *d, utilization *u) { u->gpu = 42; u->memory = 7; return state(d); }
int nvmlDeviceGetMemoryInfo(void *d, memory *m) { m->total = 1000; m->free = 600; m->used = 400; return state(d); }
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *t) { *t = 55; return state(d); }
#ifndef OLD
int nvmlDeviceGetPowerUsage(void *d, unsigned *mw) { *mw = 123400; return state(d); }
/* In mJ, at the power above: 123.4 mJ each ms. */
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *mj = (now.tv_sec * 1000ULL + now.tv_nsec / 1000000) * 1234 / 10;
    return state(d);
}
int nvmlDeviceGetClockInfo(void *d, int clock, unsigned *mhz) { *mhz = 1980; return state(d); }

/* Every 250 ms a sample of 80 %. With grow, the first call says that there are more than there are. */
int nvmlDeviceGetSamples(void *d, int kind, unsigned long long since, int *type, unsigned *count, sample *out)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    unsigned long long us = now.tv_sec * 1000000ULL + now.tv_nsec / 1000, last = us - us % 250000, n = 0;
    for (unsigned long long t = last > 5000000 ? last - 5000000 : 250000; t <= last; t += 250000)
        if (t > since) {
            if (out) { out[n].time = t; out[n].value.ull = 0; out[n].value.u = 80; }
            n++;
        }
    *type = 1;
    *count = n + (!out && says("grow") ? 100 : 0);
    return n || !out && says("grow") ? state(d) : 6;
}
#endif
